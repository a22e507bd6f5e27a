export const ADA = { email: 'ada@example.com', password: 'the right password', name: 'Ada' }

export const SECRET = 'a secret for the sessions of the benches'

const OWN = { signIn: '/sign-in', page: '/me' }

/** Where Ada signs in at each application, and the page that tells who is signed in. */
export const PATHS = {
  'fastify-svc-auth': OWN,
  'fastify-svc-auth, sessions in Redis': OWN,
  '@fastify/passport, connect-pg-simple': OWN,
  '@fastify/passport, sessions in Redis': OWN,
  'better-auth': { signIn: '/api/auth/sign-in/email', page: '/me' }
} as const
