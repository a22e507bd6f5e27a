import fastifyCors from '@fastify/cors'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { type ExternalProvider, LocalIdentityProvider, type SendMail } from 'fastify-svc-auth'

export interface ApiOptions {
  /** The public URL of the API. */
  url: string
  /** The origin of the front end. */
  front: string
  providers: readonly ExternalProvider[]
  sendMail: SendMail
}

/** The API of a front end on another origin of the same site. It has no pages of its own. */
export async function buildApi ({ url, front, providers, sendMail }: ApiOptions): Promise<FastifyInstance> {
  const app = Fastify({ logger: { level: 'warn' } })

  // Before fastify-svc-auth, so that its routes have the headers too.
  await app.register(fastifyCors, { origin: [front], credentials: true })
  await app.register(authPlugin, {
    baseUrl: url,
    trustedOrigins: [front],
    providers,
    local: new LocalIdentityProvider({
      sendMail,
      pages: {
        verifyEmail: `${front}/verify-email`,
        resetPassword: `${front}/reset-password`,
        changeEmail: `${front}/change-email`
      }
    }),
    loginPage: `${front}/`,
    reauthenticatePage: `${front}/confirm`
  })

  app.get('/report', { preHandler: app.auth.requireUser }, async request => `For ${app.auth.user(request).userId}`)
  return app
}
