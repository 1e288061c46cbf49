/**
 * Step 2 of the shape of the state file: what a program that runs for years needs beside step 1.
 */

/** The archive: sealed blocks, what was cleared away. */
const ARCHIVE = '';

/** Telemetry: how late readings of a device were seen to come, when a day was read again. */
const TELEMETRY = '';

/** Delivery: what a destination lacks, and since when it stands. */
const DELIVERY = '';

export const STEP_2 = [ARCHIVE, TELEMETRY, DELIVERY].join('\n');
