/** The code of the cells that the panel inserts: what a person would write. */

import type { Lake, Table } from './kernel';

export const LOAD = 'import lakekit\n\n%load_ext lakekit\nlake = lakekit.connect()';
export const CONNECT = 'import lakekit\n\nlake = lakekit.connect()';

const PLAIN = /^[A-Za-z_]\w*$/;

function quoted(name: string): string {
  return PLAIN.test(name) ? name : '`' + name.replaceAll('`', '``') + '`';
}

function sqlName(table: Table): string {
  return table.full_name.split('.').map(quoted).join('.');
}

export function preview(table: Table): string {
  return `%%lakesql\nSELECT * FROM ${sqlName(table)} LIMIT 20`;
}

export function query(table: Table): string {
  const columns = table.details?.columns.map(column => quoted(column.column)) ?? ['*'];
  return `%%lakesql\nSELECT ${columns.join(', ')}\nFROM ${sqlName(table)}\nLIMIT 20`;
}

function figure(name: string, table: Table, lake: Lake): string {
  const variable = lake.variable ?? 'lakekit.connect()';
  return `import lakekit.plot\n\nlakekit.plot.${name}(${variable}.table("${table.full_name}"))`;
}

export function snapshots(table: Table, lake: Lake): string {
  return figure('snapshots', table, lake);
}

export function manifests(table: Table, lake: Lake): string {
  return figure('manifests', table, lake);
}
