/**
 * What a viewer can choose. Devices are chosen by name and passed on by id: a name may change or be given twice.
 *
 * The lists are queried within the range that the dashboard shows, so that they neither grow with the age of the data
 * nor become empty while nothing new arrives.
 */
import { chosen, HOURLY, IN_RANGE, OF_FLEET, OF_WORKSPACE } from './influxql.ts';
import type { Variable } from './model.ts';

/** Takes `label`, "name (id)", apart. The name may contain brackets, the last pair is the id's. */
const NAME_AND_ID = '/^(?<text>[\\s\\S]*) \\((?<value>[\\s\\S]*)\\)$/';

/** When the range changes, so may the list. */
const ON_RANGE = 2;
const BY_NAME = 5;
/** The name that Grafana's own editor gives to the query of a variable. */
const REF_ID = 'InfluxVariableQueryEditor-VariableQuery';
const PROM_REF_ID = 'PrometheusVariableQueryEditor-VariableQuery';

/** A list in PromQL, with the number that Grafana's editor gives to its kind. */
export interface PromList {
  readonly qryType: 1 | 3;
  readonly query: string;
}

interface Choice {
  readonly name: string;
  readonly label: string;
  /** In InfluxQL; or as Grafana keeps one in PromQL. */
  readonly query: string | PromList;
  readonly regex?: string;
  readonly multi?: boolean;
  /**
   * `any`: "All" is no condition, so series without such a tag are included. `listed`: "All" means those of the list,
   * as another choice has narrowed it. `none`: there is no "All".
   */
  readonly all: 'any' | 'listed' | 'none';
  readonly hide?: 0 | 2;
}

export function choice({ name, label, query, regex = '', multi = true, all, hide = 0 }: Choice): Variable {
  const isAll = all !== 'none';
  return {
    type: 'query',
    name,
    label,
    query: typeof query === 'string' ? { refId: REF_ID, query } : { ...query, refId: PROM_REF_ID },
    definition: typeof query === 'string' ? query : query.query,
    regex,
    multi,
    includeAll: isAll,
    ...(all === 'any' ? { allValue: '.*' } : {}),
    current: isAll
      ? { text: multi ? ['All'] : 'All', value: multi ? ['$__all'] : '$__all' }
      : { text: multi ? [] : '', value: multi ? [] : '' },
    options: [],
    refresh: ON_RANGE,
    sort: BY_NAME,
    hide,
  };
}

/** The names and ids of devices, as a single frame: an inner query for each device, an outer one that puts them together. */
function labels(condition: string): string {
  return `SELECT label FROM (SELECT last(label) AS label FROM device WHERE ${HOURLY} AND ${condition} GROUP BY device_id)`;
}

export const WORKSPACE = choice({
  name: 'workspace',
  label: 'Workspace',
  query: `SHOW TAG VALUES FROM device WITH KEY = "workspace_id" WHERE ${HOURLY}`,
  all: 'any',
});

export const HUB = choice({
  name: 'hub',
  label: 'Hub',
  query: labels(`${OF_WORKSPACE} AND is_addon = 0`),
  regex: NAME_AND_ID,
  all: 'any',
});

export const MODEL = choice({
  name: 'model',
  label: 'Model',
  query: `SHOW TAG VALUES FROM device WITH KEY = "model_id" WHERE ${HOURLY} AND ${OF_WORKSPACE}`,
  all: 'any',
});

/**
 * The devices of the hubs and models that are chosen. Links carry choices to variables of the same name, and Grafana
 * does not check the values of an address: "All", of a variable that has no such thing, would be everything at once. So
 * what is chosen in another way has another name: `device` without "All", `devices` with it.
 */
export function deviceVariable(name: 'device' | 'devices', all: 'any' | 'listed' | 'none'): Variable {
  return choice({ name, label: 'Device', query: labels(OF_FLEET), regex: NAME_AND_ID, all });
}

/** The sensors of the chosen devices, each to be shown. */
export const SENSORS = choice({
  name: 'sensor',
  label: 'Sensor',
  query: `SHOW TAG VALUES FROM telemetry WITH KEY = "sensor" WHERE ${IN_RANGE} AND ${chosen('device_id', 'device')}`,
  all: 'listed',
});

/** One sensor of all that the workspace has; "All" would mix what cannot be compared. */
export const ONE_SENSOR = choice({
  name: 'one_sensor',
  label: 'Sensor',
  query: `SHOW TAG VALUES FROM telemetry WITH KEY = "sensor" WHERE ${IN_RANGE} AND ${OF_WORKSPACE}`,
  multi: false,
  all: 'none',
});

/** The hubs of the chosen devices; nobody chooses it. */
export const PARENT = choice({
  name: 'parent',
  label: 'Hub of the device',
  query: `SELECT parent FROM (SELECT last(parent_device_id) AS parent FROM device WHERE ${HOURLY} AND ${chosen('device_id', 'device')} GROUP BY device_id)`,
  all: 'listed',
  hide: 2,
});

export const KIND = choice({
  name: 'kind',
  label: 'Kind of alert',
  query: `SHOW TAG VALUES FROM alert_state WITH KEY = "kind" WHERE ${IN_RANGE} AND ${OF_WORKSPACE}`,
  all: 'any',
});
