/** lakekit in JupyterLab. */

import { highlightPlugin } from './highlight';
import { panelPlugin } from './plugin';
import { staticPlugin } from './static';

export default [highlightPlugin, panelPlugin, staticPlugin];
