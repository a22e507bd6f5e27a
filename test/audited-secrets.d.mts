/** Which secrets an event holds, by name. */
export function secretsIn (event: object): string[]
