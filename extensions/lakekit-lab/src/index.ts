/** lakekit in JupyterLab. */

import { highlightPlugin } from './highlight';
import { panelPlugin } from './plugin';

export default [highlightPlugin, panelPlugin];
