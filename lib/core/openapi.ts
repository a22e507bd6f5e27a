import type { FastifyInstance, FastifySchema } from 'fastify'

/**
 * Components for the application's OpenAPI document. The routes refer to those that the document
 * declares, and routes of the application can refer to the security schemes: `session` is the
 * cookie that a sign-in sets, `bearer` the token that `requireBearer` asks for.
 *
 * @example
 * ```ts
 * await app.register(fastifySwagger, { openapi: { components: openapiComponents } })
 * await app.register(authPlugin, options)
 * const schema = { security: [{ bearer: [] }] }
 * app.get('/reports', { schema, preHandler: app.auth.requireBearer }, handler)
 * ```
 */
export const openapiComponents: OpenapiComponents = {
  schemas: {
    AuthError: {
      title: 'AuthError',
      type: 'object',
      description: 'What went wrong',
      required: ['statusCode', 'code', 'error', 'message'],
      properties: {
        statusCode: { type: 'integer', description: 'The HTTP status' },
        code: { type: 'string', description: 'A stable code; hooks of the application may have their own' },
        error: { type: 'string', description: 'The HTTP reason phrase' },
        message: { type: 'string', description: 'A sentence for people' }
      }
    },
    Principal: {
      title: 'Principal',
      type: 'object',
      description: 'The signed-in user',
      required: ['userId', 'provider', 'claims'],
      properties: {
        userId: { type: 'string', format: 'uuid' },
        provider: {
          type: 'string', description: '`local`, `application`, `guest`, or the name of an external provider'
        },
        claims: { type: 'object', additionalProperties: true },
        guest: { type: 'boolean', description: 'Present and true for a guest, who has signed in by nothing yet' },
        impersonator: { type: 'string', format: 'uuid', description: 'Present in an impersonation: who looks' }
      }
    }
  },
  securitySchemes: {
    session: { type: 'apiKey', in: 'cookie', name: 'svc_session', description: 'The cookie of a session' },
    bearer: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: 'JWT',
      description: 'A token of the local identity provider'
    }
  }
}

/** Parts of the components object of OpenAPI 3. */
export interface OpenapiComponents {
  /** Answers of the routes, in JSON Schema. */
  schemas: Readonly<Record<'AuthError' | 'Principal', ObjectSchema>>
  /** The credentials by which a request is authenticated. */
  securitySchemes: {
    /** The cookie that a sign-in sets. */
    session: Readonly<Record<'type', 'apiKey'> & Record<'in' | 'name' | 'description', string>>
    /** The token that `requireBearer` asks for. */
    bearer: Readonly<Record<'type', 'http'> & Record<'scheme' | 'bearerFormat' | 'description', string>>
  }
}

type ObjectSchema = Readonly<
  Record<'type', 'object'> & Record<'title' | 'description', string> & Record<'required', string[]> &
  Record<'properties', Record<string, object>>
>

/**
 * Makes @fastify/swagger document the routes that are added to a scope from now on. Their schemas
 * are JSON Schema, so the application's own `transform`, which may know Zod only, is not called for
 * them.
 */
export function documentRoutes (scope: FastifyInstance): void {
  scope.addHook('onRoute', route => { route.config = Object.assign({ swaggerTransform: documented }, route.config) })
}

interface NamedSchema {
  title?: string
  description?: string
  headers?: object
}

interface DocumentedRoute {
  schema: FastifySchema & { security?: ReadonlyArray<Readonly<Record<string, readonly string[]>>> }
  url: string
  /** The document; absent for Swagger 2.0. */
  openapiObject?: {
    components?: { schemas?: Readonly<Record<string, object>>, securitySchemes?: Readonly<Record<string, unknown>> }
  }
}

/** Adapts a schema. It refers to declared components: @fastify/swagger throws at unknown names. */
function documented ({ schema, url, openapiObject }: DocumentedRoute): { schema: FastifySchema, url: string } {
  const { schemas = {}, securitySchemes = {} } = openapiObject?.components ?? {}
  const { security, body, response, ...rest } = schema
  const isDeclared = (name: string): boolean => Object.hasOwn(securitySchemes, name)
  const isKnown = security?.every(requirement => Object.keys(requirement).every(isDeclared)) === true
  // OpenAPI 3.0 does not have this keyword.
  const { propertyNames, ...known } = Object(body)
  const responses = Object.entries(Object(response))
    .map(([status, answer]) => [status, referring(Object(answer), schemas)])
  return {
    url,
    schema: {
      ...rest,
      ...(isKnown && { security }),
      ...(body !== undefined && { body: known }),
      response: Object.fromEntries(responses)
    }
  }
}

/** Refers to the schema of an answer by its name, if the document declares it. */
function referring (answer: NamedSchema, schemas: Readonly<Record<string, NamedSchema>>): unknown {
  const { title, description, headers } = answer
  if (title === undefined || schemas[title]?.title !== title) return answer
  const content = { 'application/json': { schema: { $ref: `#/components/schemas/${title}` } } }
  return { description, headers, content }
}
