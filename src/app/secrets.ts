/**
 * Secrets that are read again while the program runs, from the files that they came from.
 */
import { secretText, Unfit } from '../config/values.ts';
import { Secret } from '../core/secret.ts';

/** @param secrets what must not be shown: what is read joins it before anybody can use it. */
interface SecretParts {
  readonly readFile: (path: string) => string;
  readonly secrets: Secret[];
}

/** A reader of secrets from files. It gives `null` for a file that is half-written, empty, or away for a moment. */
export function createSecretReader({ readFile, secrets }: SecretParts): (file: string) => Secret | null {
  return (file) => {
    let text: string | Unfit;
    try {
      text = secretText(readFile(file));
    } catch {
      return null;
    }
    if (text instanceof Unfit) return null;
    const known = secrets.find((secret) => secret.reveal() === text);
    if (known !== undefined) return known;
    const read = new Secret(text);
    secrets.push(read);
    return read;
  };
}
