/** The side panel "Lake". React makes text nodes of all texts, so no name or comment can become markup. */

import { LabIcon, ReactWidget, UseSignal, refreshIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { State } from './kernel';
import type { LakeModel } from './model';
import { onKey, rowsOf } from './rows';
import type { Row } from './rows';

function wave(y: number): string {
  const along = 'c2-2.6 4.6-2.6 6.6-.7 2 1.9 4.6 1.9 6.8 0 2-1.9 4.6-1.9 6.6.7';
  const back = 'c-2-2.6-4.6-2.6-6.6-.7-2.2 1.9-4.8 1.9-6.8 0-2-1.9-4.6-1.9-6.6.7z';
  return `M2 ${y}${along}v2.4${back}`;
}

export const lakeIcon = new LabIcon({
  name: 'lakekit:lake',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">' +
    `<path class="jp-icon3" fill="#616161" d="${wave(5)}${wave(11)}${wave(17)}"/></svg>`
});

/** What the buttons of the panel do. */
export interface Actions {
  load: () => void;
  connect: () => void;
}

/** The panel as a widget of JupyterLab's shell. */
export class LakePanel extends ReactWidget {
  constructor(
    private readonly _model: LakeModel,
    private readonly _actions: Actions
  ) {
    super();
    this.id = 'lakekit-panel';
    this.addClass('lakekit-Panel');
    this.title.icon = lakeIcon;
    this.title.caption = 'Lake';
  }

  protected override onAfterShow(): void {
    this._model.isVisible = true;
  }

  protected override onAfterHide(): void {
    this._model.isVisible = false;
  }

  protected override render(): React.ReactElement {
    return (
      <UseSignal signal={this._model.changed}>
        {() => <Contents model={this._model} state={this._model.state} actions={this._actions} />}
      </UseSignal>
    );
  }
}

function Contents(props: { model: LakeModel; state: State; actions: Actions }): React.ReactElement {
  const { model, state, actions } = props;
  const lake = state.kind === 'open' ? state.lake : null;
  const place = lake ? (lake.remote ?? lake.warehouse ?? '') : '';
  return (
    <>
      <header className="lakekit-Panel-header">
        <h2>Lake</h2>
        <span className="lakekit-Panel-place" title={place}>
          {lake?.remote ? place : place.split('/').slice(-1)[0]}
        </span>
        <button
          className="lakekit-Panel-refresh"
          title="Read everything again"
          aria-label="Refresh"
          onClick={() => {
            model.refresh();
          }}
        >
          <refreshIcon.react tag="span" />
        </button>
      </header>
      {state.kind === 'open' ? (
        <Tree model={model} databases={state.databases} />
      ) : (
        <Message state={state} actions={actions} />
      )}
    </>
  );
}

function Message(props: { state: State; actions: Actions }): React.ReactElement {
  const { state, actions } = props;
  const [text, label, action] = messageOf(state, actions);
  return (
    <div className="lakekit-Panel-message" role="status" data-state={state.kind}>
      <p>{text}</p>
      {label && (
        <button className="lakekit-Panel-action jp-mod-styled jp-mod-accept" onClick={action}>
          {label}
        </button>
      )}
    </div>
  );
}

function messageOf(state: State, actions: Actions): [string, string?, (() => void)?] {
  switch (state.kind) {
    case 'no-notebook':
      return ['Open a notebook to see the tables of its lake.'];
    case 'waiting':
      return ['Waiting for the kernel…'];
    case 'not-python':
      return [`The kernel of this notebook runs ${state.language}; lakekit needs Python.`];
    case 'not-installed':
      return [
        "The Python of this kernel has no lakekit. Install it there: pip install 'lakekit[lab]'"
      ];
    case 'not-loaded':
      return [
        'This kernel has not loaded lakekit. The button adds a cell that does, and runs it; it starts Spark.',
        'Load lakekit',
        actions.load
      ];
    case 'not-open':
      return [
        'No lake is open in this kernel. The button adds a cell that opens ./warehouse, and runs it; it starts Spark.',
        'Open the lake',
        actions.connect
      ];
    case 'failed':
      return [`The kernel could not say what the lake holds. ${state.message}`];
    case 'open':
      return [''];
  }
}

function Tree(props: {
  model: LakeModel;
  databases: Parameters<typeof rowsOf>[0];
}): React.ReactElement {
  const { model, databases } = props;
  const [filter, setFilter] = React.useState('');
  const [closedDatabases, setClosed] = React.useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = React.useState('');
  const list = React.useRef<HTMLDivElement>(null);
  const rows = rowsOf(databases, { tables: model.opened, closedDatabases }, filter);
  const at = Math.max(
    rows.findIndex(row => row.id === current),
    0
  );

  const toggle = (row: Row): void => {
    if (row.kind === 'table') {
      model.toggle(row.table);
    } else if (row.kind === 'database') {
      const closed = new Set(closedDatabases);
      if (!closed.delete(row.database.name)) {
        closed.add(row.database.name);
      }
      setClosed(closed);
    }
  };
  const press = (event: React.KeyboardEvent): void => {
    const done = rows.length > 0 ? onKey(rows, at, event.key) : null;
    if (done === null) {
      return;
    }
    event.preventDefault();
    if (done === 'toggle') {
      toggle(rows[at]);
    } else {
      setCurrent(rows[done].id);
      (list.current?.children[done] as HTMLElement | undefined)?.focus();
    }
  };
  return (
    <>
      <input
        className="lakekit-Panel-filter jp-mod-styled"
        type="search"
        placeholder="Filter tables and columns"
        aria-label="Filter tables and columns"
        value={filter}
        onChange={event => {
          setFilter(event.target.value);
        }}
      />
      {rows.length === 0 && (
        <p className="lakekit-Panel-message">No table or column has that name.</p>
      )}
      <div
        ref={list}
        role="tree"
        aria-label="Tables of the lake"
        className="lakekit-Tree"
        onKeyDown={press}
      >
        {rows.map((row, index) => (
          <div
            key={row.id}
            role="treeitem"
            className="lakekit-Row"
            data-kind={row.kind}
            data-table={row.kind === 'table' ? row.table.full_name : undefined}
            aria-level={row.level}
            aria-expanded={row.isOpen ?? undefined}
            aria-selected={index === at}
            tabIndex={index === at ? 0 : -1}
            style={{ paddingLeft: `${row.level * 14 - 8}px` }}
            onFocus={() => {
              setCurrent(row.id);
            }}
            onClick={() => {
              toggle(row);
            }}
          >
            <span className="lakekit-Row-arrow" aria-hidden="true">
              {row.isOpen === null ? '' : row.isOpen ? '▾' : '▸'}
            </span>
            <RowText row={row} />
          </div>
        ))}
      </div>
    </>
  );
}

function RowText(props: { row: Row }): React.ReactElement {
  const { row } = props;
  switch (row.kind) {
    case 'database':
      return <span className="lakekit-Row-name">{row.database.name}</span>;
    case 'note':
      return (
        <span className={row.isError ? 'lakekit-Row-error' : 'lakekit-Row-note'}>{row.text}</span>
      );
    case 'table': {
      const { details, error, name } = row.table;
      return (
        <>
          <span className="lakekit-Row-name" title={details?.comment ?? undefined}>
            {name}
          </span>
          {error !== undefined && <Badge text="!" title={error} />}
          {details?.log && (
            <Badge
              text="log"
              title={`Changes are also in the log: topic ${details.log.topic ?? '?'} at ${details.log.address ?? '?'}`}
            />
          )}
          {details && details.buckets !== null && (
            <Badge
              text={`${details.buckets} ${details.buckets === 1 ? 'bucket' : 'buckets'}`}
              title={`Primary key (${details.key.join(', ')}), ${details.buckets} buckets in each partition`}
            />
          )}
          {details && details.key.length === 0 && (
            <Badge text="no key" title="Rows are only appended" />
          )}
          {details && (
            <Badge
              text={`v${details.version}`}
              title={versionTitle(details.version, details.files)}
            />
          )}
        </>
      );
    }
    case 'column': {
      const { column, type, key, partition, comment, nullable } = row.column;
      return (
        <>
          <span className="lakekit-Row-name" title={comment ?? undefined}>
            {column}
          </span>
          <span className="lakekit-Row-type" title={nullable ? type : `${type} not null`}>
            {type}
          </span>
          {key !== null && <Badge text="key" title={`Column ${key} of the primary key`} />}
          {partition !== null && <Badge text="partition" title={`Partition column ${partition}`} />}
        </>
      );
    }
  }
}

function versionTitle(version: number, files: number): string {
  const versions =
    version === 0
      ? 'The first version'
      : `Version ${version}; the table has had ${version + 1} versions`;
  return `${versions}. ${files} data ${files === 1 ? 'file' : 'files'} now`;
}

function Badge(props: { text: string; title: string }): React.ReactElement {
  return (
    <span className="lakekit-Badge" title={props.title}>
      {props.text}
    </span>
  );
}
