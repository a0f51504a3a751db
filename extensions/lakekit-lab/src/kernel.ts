/** What a kernel says of its lake; `lakekit/notebook/panel.py` is the other end. */

import type { Kernel } from '@jupyterlab/services';

/** A column, as `lakekit.table.describe.columns` tells it. */
export interface Column {
  column: string;
  type: string;
  nullable: boolean;
  key: number | null;
  partition: number | null;
  comment: string | null;
}

/** What is known of a table whose log was read. */
export interface Details {
  comment: string | null;
  columns: Column[];
  key: string[];
  partitions: string[];
  buckets: number | null;
  version: number;
  files: number;
  log: { topic: string | null; address: string | null } | null;
}

export interface Table {
  name: string;
  full_name: string;
  details: Details | null;
  error?: string;
}

export interface Database {
  name: string;
  tables: Table[];
  error?: string;
}

/** The lake that is open in a kernel. */
export interface Lake {
  warehouse: string | null;
  remote: string | null;
  database: string;
  variable: string | null;
}

/** What the panel has to show. */
export type State =
  | { kind: 'no-notebook' }
  | { kind: 'waiting' }
  | { kind: 'not-python'; language: string }
  | { kind: 'not-installed' }
  | { kind: 'not-loaded' }
  | { kind: 'not-open' }
  | { kind: 'failed'; message: string }
  | { kind: 'open'; lake: Lake; databases: Database[] };

interface Expression {
  status: string;
  ename?: string;
  evalue?: string;
  data?: Record<string, unknown>;
}

/** Asks an idle kernel; it executes nothing else, and imports nothing that it has not imported already. */
export async function askKernel(
  kernel: Kernel.IKernelConnection,
  opened: readonly string[],
  fresh: boolean
): Promise<State> {
  const language = (await kernel.info).language_info.name;
  if (language !== 'python') {
    return { kind: 'not-python', language };
  }
  const call = `answer(${JSON.stringify(opened)}, fresh=${fresh ? 'True' : 'False'})`;
  const future = kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    allow_stdin: false,
    stop_on_error: false,
    user_expressions: {
      installed: '__import__("importlib.util").util.find_spec("lakekit") is not None',
      answer: `__import__("sys").modules["lakekit.notebook.panel"].${call}`
    }
  });
  const { content } = await future.done;
  if (content.status !== 'ok') {
    return { kind: 'failed', message: 'The kernel did not answer.' };
  }
  const replies = content.user_expressions as unknown as Record<string, Expression | undefined>;
  return readAnswer(replies.installed, replies.answer);
}

function readAnswer(installed: Expression | undefined, answer: Expression | undefined): State {
  if (answer?.status === 'ok') {
    const value = answer.data?.['application/json'] as
      { lake: null } | { lake: Lake; databases: Database[] } | undefined;
    if (value === undefined) {
      return { kind: 'failed', message: 'The kernel answered with something else than JSON.' };
    }
    return value.lake === null ? { kind: 'not-open' } : { kind: 'open', ...value };
  }
  if (answer?.ename === 'KeyError') {
    const found = installed?.data?.['text/plain'] === 'True';
    return { kind: found ? 'not-loaded' : 'not-installed' };
  }
  return { kind: 'failed', message: answer?.evalue ?? 'The kernel did not answer.' };
}
