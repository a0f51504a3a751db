/** Brings the panel into JupyterLab: its place, its commands, and the cells that these insert. */

import { ILayoutRestorer } from '@jupyterlab/application';
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker } from '@jupyterlab/notebook';

import { insertCell } from './cells';
import * as code from './code';
import { LakeModel } from './model';
import { LakePanel } from './panel';

const TABLE = '.lakekit-Row[data-kind="table"]';

export const panelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'lakekit-lab:panel',
  description: 'A side panel with the databases and tables of the lake.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ) => {
    const model = new LakeModel(tracker);
    const insert = (source: string, run: boolean): void => {
      if (model.notebook !== null) {
        insertCell(model.notebook, source, run);
      }
    };
    const panel = new LakePanel(model, {
      load: () => {
        insert(code.LOAD, true);
      },
      connect: () => {
        insert(code.CONNECT, true);
      }
    });
    app.shell.add(panel, 'left', { rank: 600 });
    restorer?.add(panel, panel.id);
    addCommands(app, model, insert);
    app.commands.addCommand('lakekit:show', {
      label: 'Show the Lake Panel',
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        app.shell.activateById(panel.id);
      }
    });
    palette?.addItem({ command: 'lakekit:show', category: 'Lake' });
  }
};

function addCommands(
  app: JupyterFrontEnd,
  model: LakeModel,
  insert: (source: string, run: boolean) => void
): void {
  const menu = [
    { id: 'preview', label: 'Preview Rows', make: code.preview, run: true },
    { id: 'snapshots', label: 'Show Snapshots', make: code.snapshots, run: true },
    { id: 'manifests', label: 'Show Manifests', make: code.manifests, run: true },
    { id: 'query', label: 'Insert a Query', make: code.query, run: false }
  ];
  menu.forEach(({ id, label, make, run }, rank) => {
    const command = `lakekit:${id}`;
    app.commands.addCommand(command, {
      label,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => {
        const row = app.contextMenuHitTest(node => node.dataset.table !== undefined);
        const table = model.findTable(row?.dataset.table ?? '');
        if (table !== undefined && model.state.kind === 'open') {
          insert(make(table, model.state.lake), run);
        }
      }
    });
    app.contextMenu.addItem({ command, selector: TABLE, rank });
  });
}
