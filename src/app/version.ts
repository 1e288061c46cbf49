/** The version of the program, as `--version` prints it. A test compares it with package.json. */
export const VERSION = '0.1.0';
