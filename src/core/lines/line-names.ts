/**
 * The names that lines are made of (design 1.4): measurements, tag keys and field keys, all of our own choosing.
 *
 * What a device reports is only ever a value, never a name: so no sensor can be called `time` and be lost, make a
 * database refuse a line, or collide with a tag. No tag key is also a field key (InfluxDB 3 refuses that).
 */

export const MEASUREMENTS = [
  'telemetry',
  'device',
  'alert',
  'alert_state',
  'workspace',
  'coverage',
  'coverage_hour',
] as const;

export type Measurement = (typeof MEASUREMENTS)[number];

export const TAG_KEYS = ['device_id', 'sensor', 'device_name', 'model_id', 'alert_id', 'kind', 'workspace_id'] as const;

export type TagKey = (typeof TAG_KEYS)[number];

export const FIELD_KEYS = [
  // telemetry, alert_state
  'value',
  'flag',
  'text',
  // device
  'label',
  'online',
  'presence',
  'lifecycle_status',
  'firmware_version',
  'is_addon',
  'parent_device_id',
  'latitude',
  'longitude',
  'location_updated_at',
  'last_seen_ms',
  'tags',
  // alert, alert_state
  'rule_name',
  'condition',
  'threshold',
  'status',
  'open',
  'fire_count',
  // workspace
  'name',
  'devices',
  'open_alerts',
  'plan_id',
  'plan_name',
  'max_api_keys',
  'external_requests_per_minute',
  'external_requests_per_day',
  'history_max_days',
  'max_devices_per_page',
  'requests_spent_minute',
  'requests_left_minute',
  'requests_spent_day',
  'requests_left_day',
  // coverage, coverage_hour
  'state',
  'lag_seconds',
  'gap_seconds',
  'readings',
] as const;

export type FieldKey = (typeof FIELD_KEYS)[number];
