export const ADA = { email: 'ada@example.com', password: 'the right password', name: 'Ada' }

/** What passwords cost by default. */
export const COST = { memoryCost: 19456, timeCost: 2, parallelism: 1 }

export const SECRET = 'a secret for the sessions of the benches'
