/**
 * Whether the tests look at all of a large set of cases (`npm run test:all`) or at a part that finds most mistakes
 * (`npm test`).
 */
export const isThorough = process.env.TEST_ALL !== undefined
