/** The lake of the notebook that is in front, kept up to date. */

import type { ISessionContext } from '@jupyterlab/apputils';
import { NotebookActions } from '@jupyterlab/notebook';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';
import { Signal } from '@lumino/signaling';

import { askKernel } from './kernel';
import type { State, Table } from './kernel';

/** A kernel that stays idle this long has no further cell in its queue. */
const QUIET_MS = 250;

/**
 * Follows the active notebook and its kernel.
 *
 * The kernel is asked after each executed cell, but only while it is idle and the panel can be seen: a question
 * must never wait behind the user's work, nor the user's work behind it.
 */
export class LakeModel implements IDisposable {
  /** Emitted when anything that is shown has changed. */
  readonly changed = new Signal<this, void>(this);
  readonly opened = new Set<string>();
  private readonly _debouncer = new Debouncer(() => this._ask(), QUIET_MS);
  private _session: ISessionContext | null = null;
  private _state: State = { kind: 'no-notebook' };
  private _isStale = true;
  private _isFresh = false;
  private _isVisible = false;
  private _isAsking = false;

  constructor(private readonly _tracker: INotebookTracker) {
    _tracker.currentChanged.connect(this._onNotebook, this);
    NotebookActions.executed.connect(this._onExecuted, this);
    this._onNotebook();
  }

  get state(): State {
    return this._state;
  }

  get notebook(): NotebookPanel | null {
    return this._tracker.currentWidget;
  }

  get isDisposed(): boolean {
    return this._debouncer.isDisposed;
  }

  dispose(): void {
    this._debouncer.dispose();
    Signal.clearData(this);
  }

  /** Tells whether the panel can be seen; while it cannot, no kernel is asked. */
  set isVisible(value: boolean) {
    this._isVisible = value;
    this._schedule();
  }

  /** Opens or closes a table in the tree; the columns of an open one are always read. */
  toggle(table: Table): void {
    if (!this.opened.delete(table.full_name)) {
      this.opened.add(table.full_name);
      if (table.details === null) {
        this._isStale = true;
        this._schedule();
      }
    }
    this.changed.emit();
  }

  /** Reads everything again because a person asked for it. */
  refresh(): void {
    this._isStale = this._isFresh = true;
    this._schedule();
  }

  findTable(fullName: string): Table | undefined {
    const databases = this._state.kind === 'open' ? this._state.databases : [];
    return databases.flatMap(database => database.tables).find(t => t.full_name === fullName);
  }

  private _onNotebook(): void {
    const session = this.notebook?.sessionContext ?? null;
    if (session === this._session) {
      return;
    }
    if (this._session !== null) {
      this._session.statusChanged.disconnect(this._onStatus, this);
      this._session.kernelChanged.disconnect(this._onKernel, this);
    }
    this._session = session;
    session?.statusChanged.connect(this._onStatus, this);
    session?.kernelChanged.connect(this._onKernel, this);
    this._onKernel();
  }

  private _onKernel(): void {
    this._isStale = true;
    this._show(this._session === null ? { kind: 'no-notebook' } : { kind: 'waiting' });
    this._schedule();
  }

  private _onExecuted(_: unknown, { notebook }: { notebook: unknown }): void {
    if (notebook === this.notebook?.content) {
      this._isStale = true;
      this._schedule();
    }
  }

  private _onStatus(_: unknown, status: string): void {
    if (status === 'restarting' || status === 'dead') {
      this._onKernel();
    } else if (status === 'idle') {
      this._schedule();
    }
  }

  private _schedule(): void {
    if (this._isStale && this._isVisible && this._session !== null && !this.isDisposed) {
      void this._debouncer.invoke();
    }
  }

  private async _ask(): Promise<void> {
    const session = this._session;
    const kernel = session?.session?.kernel;
    if (!this._isVisible || this._isAsking || !kernel || kernel.status !== 'idle') {
      return;
    }
    const fresh = this._isFresh;
    this._isStale = this._isFresh = false;
    this._isAsking = true;
    let state: State;
    try {
      state = await askKernel(kernel, [...this.opened], fresh);
    } catch (error) {
      // The connection was closed in the meantime, as a restart does; another kernel asks again by itself.
      state = { kind: 'failed', message: String(error) };
    } finally {
      this._isAsking = false;
    }
    if (session === this._session && kernel === this._session.session?.kernel) {
      this._show(state);
    }
    this._schedule();
  }

  private _show(state: State): void {
    this._state = state;
    this.changed.emit();
  }
}
