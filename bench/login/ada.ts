export const ADA = { email: 'ada@example.com', password: 'the right password', name: 'Ada' }

/** What passwords cost by default. */
export const COST = { memoryCost: 19456, timeCost: 2, parallelism: 1 }

/** The least that Argon2 takes: what is left is what a login costs besides. */
export const LEAST_COST = { memoryCost: 8, timeCost: 1, parallelism: 1 }

export const SECRET = 'a secret for the sessions of the benches'

/** Where each application takes e-mail and password. */
export const PATHS = {
  'fastify-svc-auth': { login: '/auth/local/login', registration: '/auth/local/register' },
  '@fastify/passport and @fastify/session': { login: '/login', registration: '/register' },
  '@fastify/passport, sessions by hand in the database': { login: '/login', registration: '/register' },
  'better-auth': { login: '/api/auth/sign-in/email', registration: '/api/auth/sign-up/email' }
} as const
