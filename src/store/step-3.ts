/**
 * Step 3 of the shape of the state file: held readings that the API has stopped showing.
 */
export const STEP_3 = `
  -- Since when (server's time) empty answers have lacked a held reading that they had to show, and whether it is taken
  -- as gone by now. A row ends when the reading is shown again.
  CREATE TABLE missed_anchor (
    device_id TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    is_gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (device_id, at_ns)
  ) WITHOUT ROWID;
`;
