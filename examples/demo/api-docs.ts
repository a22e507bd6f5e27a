import fastifySwagger from '@fastify/swagger'
import fastifySwaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { openapiComponents } from 'fastify-svc-auth'

/** Scripts and styles of Swagger UI are files of its own, and it asks only us; its icons are data. */
const POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

/** The sign-in routes as an OpenAPI document, to read and to try out at `/docs`. It holds routes that are added afterwards; pages have no tags, and are left out. */
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
      // Without the bar on top, whose logo has a style sheet inside.
      layout: 'BaseLayout',
      // Who asks for anything is answered as a form on a page is: with a redirect.
      requestInterceptor: askForJson
    },
    theme: { title: 'API of the example' }
  })
}

/** Runs in the browser, where its text is sent to. */
function askForJson<R extends { headers?: object }> (request: R): R {
  return { ...request, headers: { ...request.headers, accept: 'application/json' } }
}
