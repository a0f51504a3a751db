/** The lines of the tree, from what the kernel said, what is open and what is looked for. */

import type { Column, Database, Table } from './kernel';

interface RowBase {
  id: string;
  level: number;
  parent: string | null;
  isOpen: boolean | null;
}

/** One line; `isOpen` is null where nothing can be opened. */
export type Row =
  | (RowBase & { kind: 'database'; database: Database })
  | (RowBase & { kind: 'table'; table: Table })
  | (RowBase & { kind: 'column'; column: Column })
  | (RowBase & { kind: 'note'; text: string; isError: boolean });

/** Which of the lines are open. */
export interface Opened {
  tables: ReadonlySet<string>;
  closedDatabases: ReadonlySet<string>;
}

/** Returns the lines to show; a filter keeps tables by their name or that of a column, and opens what it finds. */
export function rowsOf(databases: readonly Database[], opened: Opened, filter: string): Row[] {
  const wanted = filter.trim().toLowerCase();
  const rows: Row[] = [];
  for (const database of databases) {
    const id = `d:${database.name}`;
    const isWhole = database.name.toLowerCase().includes(wanted);
    const tables = database.tables.flatMap(t => tableRows(t, id, opened, isWhole ? '' : wanted));
    if (!isWhole && tables.length === 0) {
      continue;
    }
    const isOpen = wanted !== '' || !opened.closedDatabases.has(database.name);
    rows.push({ kind: 'database', id, level: 1, parent: null, isOpen, database });
    if (!isOpen) {
      continue;
    }
    if (database.error !== undefined) {
      rows.push(note(id, 2, database.error, true));
    } else if (database.tables.length === 0) {
      rows.push(note(id, 2, 'no tables', false));
    }
    rows.push(...tables);
  }
  return rows;
}

function tableRows(table: Table, parent: string, opened: Opened, wanted: string): Row[] {
  const columns = table.details?.columns ?? [];
  const isNamed = table.full_name.toLowerCase().includes(wanted);
  const found = columns.filter(c => c.column.toLowerCase().includes(wanted));
  if (!isNamed && found.length === 0) {
    return [];
  }
  const id = `t:${table.full_name}`;
  const isOpen = opened.tables.has(table.full_name) || !isNamed;
  const rows: Row[] = [{ kind: 'table', id, level: 2, parent, isOpen, table }];
  if (!isOpen) {
    return rows;
  }
  if (table.error !== undefined) {
    rows.push(note(id, 3, table.error, true));
  } else if (table.details === null) {
    rows.push(note(id, 3, 'reading…', false));
  }
  for (const column of isNamed ? columns : found) {
    const columnId = `c:${table.full_name}:${column.column}`;
    rows.push({ kind: 'column', id: columnId, level: 3, parent: id, isOpen: null, column });
  }
  return rows;
}

function note(parent: string, level: number, text: string, isError: boolean): Row {
  return { kind: 'note', id: `n:${parent}`, level, parent, isOpen: null, text, isError };
}

/** Returns the line that a key leads to, or what it does to the line it is pressed on. */
export function onKey(rows: readonly Row[], at: number, key: string): number | 'toggle' | null {
  const row = rows[at];
  switch (key) {
    case 'ArrowDown':
      return Math.min(at + 1, rows.length - 1);
    case 'ArrowUp':
      return Math.max(at - 1, 0);
    case 'Home':
      return 0;
    case 'End':
      return rows.length - 1;
    case 'ArrowRight':
      return row.isOpen === false
        ? 'toggle'
        : row.isOpen
          ? Math.min(at + 1, rows.length - 1)
          : null;
    case 'ArrowLeft':
      return row.isOpen ? 'toggle' : rows.findIndex(r => r.id === (row.parent ?? row.id));
    case 'Enter':
    case ' ':
      return row.isOpen === null ? null : 'toggle';
    default:
      return null;
  }
}
