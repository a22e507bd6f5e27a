import fastifySwagger from '@fastify/swagger'
import fastifySwaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { openapiComponents } from 'fastify-svc-auth'

/** Swagger UI loads scripts and styles from files and asks this application only; its icons are data: URLs. */
const POLICY = [
  "default-src 'none'", "style-src 'self'", "script-src 'self'", "connect-src 'self'", "img-src 'self' data:",
  "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"
].join('; ')

/**
 * Shows the sign-in routes as an OpenAPI document at `/docs`. Register it before them; pages have no tags and are left
 * out.
 */
export async function mountApiDocs (app: FastifyInstance, baseUrl: string): Promise<void> {
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Sign-in', description: 'The routes of fastify-svc-auth in this application.', version: '1.0.0' },
      servers: [{ url: baseUrl }],
      components: openapiComponents
    },
    hideUntagged: true
  })
  await app.register(fastifySwaggerUi, {
    routePrefix: '/docs',
    staticCSP: POLICY,
    uiConfig: {
      // Without the top bar: its logo contains a style sheet, which the policy forbids.
      layout: 'BaseLayout',
      // Without an Accept header for JSON, routes answer with a redirect, as to a form.
      requestInterceptor: askForJson
    },
    theme: { title: 'API of the example' }
  })
}

/** Runs in the browser: Swagger UI sends its source there. */
function askForJson<R extends { headers?: object }> (request: R): R {
  return { ...request, headers: { ...request.headers, accept: 'application/json' } }
}
