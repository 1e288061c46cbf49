/**
 * Random numbers for the fuzz: every draw of a case comes from here, in sequence, so that its seed determines the case.
 */

/** Numbers drawn in sequence, the same for the same seed. */
export interface Dice {
  unit(): number;
  whole(min: number, max: number): number;
  chance(share: number): boolean;
  pick<T>(items: readonly T[]): T;
}

export function createDice(seed: number): Dice {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(state ^ (state >>> 15), state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (min: number, max: number): number => min + Math.floor(unit() * (max - min + 1));
  return {
    unit,
    whole,
    chance: (share) => unit() < share,
    pick: (items) => {
      const item = items[whole(0, items.length - 1)];
      if (item === undefined) throw new RangeError('nothing to pick from');
      return item;
    },
  };
}
