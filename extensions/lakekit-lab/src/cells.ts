/** Cells that the panel puts into the active notebook. */

import { NotebookActions } from '@jupyterlab/notebook';
import type { NotebookPanel } from '@jupyterlab/notebook';

/** Puts code into a new cell below the active one, or into that if it is empty, and runs it if asked to. */
export function insertCell(panel: NotebookPanel, source: string, run: boolean): void {
  const notebook = panel.content;
  const active = notebook.activeCell?.model;
  if (active?.type !== 'code' || active.sharedModel.getSource().trim() !== '') {
    NotebookActions.insertBelow(notebook);
  }
  notebook.activeCell?.model.sharedModel.setSource(source);
  if (run) {
    void NotebookActions.run(notebook, panel.sessionContext);
    if (notebook.activeCell !== null) {
      void notebook.scrollToItem(notebook.activeCellIndex);
    }
  } else {
    panel.activate();
    notebook.mode = 'edit';
  }
}
