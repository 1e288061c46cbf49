/**
 * The filter that leaves nothing out, for rigs that change a part of it.
 */
import { createFilter, type DeviceFilter } from '../../src/core/filter.ts';

/** The filter that leaves nothing out. */
export const KEEP_ALL: DeviceFilter = createFilter({
  include: [],
  exclude: [],
  excludeSensors: [],
  includesLocation: true,
});
