/** Shows the static form of a saved lakekit widget where its kernel is gone, in place of an error. */

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel } from '@lumino/widgets';

const VIEW = 'application/vnd.jupyter.widget-view+json';
const HTML = 'text/html';
/** How long a widget may take to appear: its model may be on its way from the kernel. */
const PATIENCE_MS = 1000;

/** The widget, or its static form for as long as there is none. */
class LiveOrStatic extends Panel implements IRenderMime.IRenderer {
  constructor(
    private readonly live: IRenderMime.IRenderer,
    private readonly rendermime: IRenderMimeRegistry
  ) {
    super();
    this.addWidget(live);
    this.observer.observe(live.node, { childList: true });
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.showLive();
    const html = model.data[HTML];
    if (typeof html === 'string' && html.includes('lakekit-static')) {
      this.timer = window.setTimeout(() => {
        void this.showStatic(new MimeModel({ data: { [HTML]: html }, trusted: model.trusted }));
      }, PATIENCE_MS);
    }
    await this.live.renderModel(model);
  }

  override dispose(): void {
    window.clearTimeout(this.timer);
    this.observer.disconnect();
    super.dispose();
  }

  // A widget is an element; "Loading" and "model not found" are bare text.
  private get isLive(): boolean {
    return this.live.node.firstElementChild !== null;
  }

  private async showStatic(model: IRenderMime.IMimeModel): Promise<void> {
    const shown = this.rendermime.createRenderer(HTML);
    await shown.renderModel(model);
    if (this.isLive || this.isDisposed) {
      shown.dispose();
      return;
    }
    this.static?.dispose();
    this.static = shown;
    this.live.hide();
    this.addWidget(shown);
  }

  private showLive(): void {
    window.clearTimeout(this.timer);
    this.static?.dispose();
    this.static = null;
    this.live.show();
  }

  private readonly observer = new MutationObserver(() => {
    if (this.isLive) {
      this.showLive();
    }
  });
  private static: IRenderMime.IRenderer | null = null;
  private timer = 0;
}

function addFallback(rendermime: IRenderMimeRegistry): void {
  const widgets = rendermime.getFactory(VIEW);
  if (widgets !== undefined) {
    rendermime.addFactory({
      ...widgets,
      mimeTypes: [VIEW],
      defaultRank: -10,
      createRenderer: options => new LiveOrStatic(widgets.createRenderer(options), rendermime)
    });
  }
}

export const staticPlugin: JupyterFrontEndPlugin<void> = {
  id: 'lakekit-lab:static',
  description: 'Saved widgets of lakekit show their static form where their kernel is gone.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_app, tracker: INotebookTracker) => {
    tracker.widgetAdded.connect((_, panel) => {
      // After ipywidgets, which has its renderer for each notebook from the same signal.
      queueMicrotask(() => {
        addFallback(panel.content.rendermime);
      });
    });
  }
};
