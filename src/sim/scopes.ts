/** The scopes of version 1 (API document, "Authentication"). A name outside this set grants nothing. */

export const API_SCOPES = ['devices:read', 'telemetry:read', 'alerts:read', 'account:read'] as const;

export type ApiScope = (typeof API_SCOPES)[number];
