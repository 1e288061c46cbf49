/**
 * What `--help` tells beside a mode, one file a mode.
 */
import type { Mode } from './flags.ts';
import { BACKFILL_TOPIC } from './topics/backfill.ts';
import { BACKUP_TOPIC } from './topics/backup.ts';
import { CHECK_TOPIC } from './topics/check.ts';
import { DEMO_TOPIC } from './topics/demo.ts';
import { EXPORT_TOPIC } from './topics/export.ts';
import { FORGET_TOPIC } from './topics/forget.ts';
import { HEALTH_TOPIC } from './topics/health.ts';
import { ONCE_TOPIC } from './topics/once.ts';
import { PLAN_TOPIC } from './topics/plan.ts';
import { QUARANTINE_TOPIC } from './topics/quarantine.ts';
import { REPLAY_TOPIC } from './topics/replay.ts';
import { STATUS_TOPIC } from './topics/status.ts';
import { VERIFY_TOPIC } from './topics/verify.ts';

export const TOPICS: Partial<Record<Mode, string>> = {
  backfill: BACKFILL_TOPIC,
  once: ONCE_TOPIC,
  plan: PLAN_TOPIC,
  demo: DEMO_TOPIC,
  check: CHECK_TOPIC,
  export: EXPORT_TOPIC,
  replay: REPLAY_TOPIC,
  verify: VERIFY_TOPIC,
  quarantine: QUARANTINE_TOPIC,
  backup: BACKUP_TOPIC,
  forget: FORGET_TOPIC,
  status: STATUS_TOPIC,
  health: HEALTH_TOPIC,
};
