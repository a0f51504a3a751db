/** Shows the SQL of `%%lakesql` cells and `%lakesql` lines as SQL; everything else stays Python. */

import { highlightingFor } from '@codemirror/language';
import { Compartment, EditorState, Prec } from '@codemirror/state';
import type { Extension, Range } from '@codemirror/state';
import { Decoration, ViewPlugin } from '@codemirror/view';
import type { DecorationSet, EditorView, ViewUpdate } from '@codemirror/view';
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { tags } from '@lezer/highlight';
import type { Tag } from '@lezer/highlight';

import { CELL_MAGIC, LINE_MAGIC, cellLanguage, styleLine } from './sql';

// The first language that an editor has counts, so this one must come before the notebook's.
const SQL = Prec.highest([cellLanguage]);

function isSql(text: string): boolean {
  return CELL_MAGIC.test(text);
}

/** Gives an editor the language of SQL for as long as its text begins with the magic. */
function cellHighlighting(text: string): Extension {
  const language = new Compartment();
  return [
    language.of(isSql(text) ? SQL : []),
    EditorState.transactionExtender.of(transaction => {
      if (!transaction.docChanged) {
        return null;
      }
      const now = isSql(transaction.newDoc.sliceString(0, 200));
      const before = isSql(transaction.startState.doc.sliceString(0, 200));
      return now === before ? null : { effects: language.reconfigure(now ? SQL : []) };
    })
  ];
}

const LINE_TAGS: Record<string, Tag> = {
  atom: tags.atom,
  bracket: tags.bracket,
  comment: tags.comment,
  keyword: tags.keyword,
  meta: tags.meta,
  number: tags.number,
  operator: tags.operator,
  punctuation: tags.punctuation,
  string: tags.string,
  type: tags.typeName,
  variableName: tags.variableName,
  'variableName.special': tags.special(tags.variableName)
};

function lineDecorations(view: EditorView): DecorationSet {
  if (isSql(view.state.doc.sliceString(0, 200))) {
    return Decoration.none;
  }
  const marks: Range<Decoration>[] = [];
  for (const { from, to } of view.visibleRanges) {
    for (let position = from; position <= to;) {
      const line = view.state.doc.lineAt(position);
      const magic = LINE_MAGIC.exec(line.text);
      if (magic) {
        const start = magic[1].length;
        for (const span of styleLine(line.text.slice(start))) {
          const style = highlightingFor(view.state, [LINE_TAGS[span.style] ?? tags.name]);
          // A piece without a colour of its own hides the one that Python gave it.
          marks.push(
            Decoration.mark({ class: style ?? 'lakekit-plain' }).range(
              line.from + start + span.from,
              line.from + start + span.to
            )
          );
        }
      }
      position = line.to + 1;
    }
  }
  return Decoration.set(marks, true);
}

const lineHighlighting = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = lineDecorations(view);
    }

    update(update: ViewUpdate): void {
      if (update.docChanged || update.viewportChanged) {
        this.decorations = lineDecorations(update.view);
      }
    }
  },
  { decorations: plugin => plugin.decorations }
);

/** Registers the colours with all editors of code cells. */
export const highlightPlugin: JupyterFrontEndPlugin<void> = {
  id: 'lakekit-lab:highlight',
  description: 'Colours for SQL in cells of lakekit.',
  autoStart: true,
  requires: [IEditorExtensionRegistry],
  activate: (_app, editors: IEditorExtensionRegistry) => {
    editors.addExtension({
      name: 'lakekit-lab:highlight',
      factory: ({ model }) =>
        EditorExtensionRegistry.createImmutableExtension([
          cellHighlighting(model.sharedModel.getSource()),
          // What comes first ends up innermost, and its colour is the one that shows.
          Prec.highest(lineHighlighting)
        ])
    });
  }
};
