/**
 * What a person is told of a destination that asks for patience, or does not answer at all: by it those that heal by
 * themselves are known from those that a person has to mend.
 */
export const LATER_HINT =
  'delivery goes on by itself once the database takes writes, and nothing is lost meanwhile; if this lasts, look at its log, its disk and what stands between';
