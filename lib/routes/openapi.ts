import type { FastifyInstance, FastifySchema } from 'fastify'

/**
 * The parts of an OpenAPI document that the routes refer to, when the application declares them; it can refer to the security schemes too.
 * `session` is the cookie that a sign-in sets, `bearer` the token that `requireBearer` asks for.
 *
 * @example
 * ```ts
 * await app.register(fastifySwagger, { openapi: { components: openapiComponents } })
 * await app.register(authPlugin, options)
 * app.get('/reports', { schema: { security: [{ bearer: [] }] }, preHandler: app.auth.requireBearer }, handler)
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
        code: { type: 'string', description: 'A stable code; a hook of the application may refuse with codes of its own' },
        error: { type: 'string', description: 'The words of the HTTP status' },
        message: { type: 'string', description: 'A sentence for people' }
      }
    },
    Principal: {
      title: 'Principal',
      type: 'object',
      description: 'Who is signed in',
      required: ['userId', 'provider', 'claims'],
      properties: {
        userId: { type: 'string', format: 'uuid' },
        provider: { type: 'string', description: '`local`, or the name of an external provider' },
        claims: { type: 'object', additionalProperties: true }
      }
    }
  },
  securitySchemes: {
    session: { type: 'apiKey', in: 'cookie', name: 'svc_session', description: 'The cookie of a session' },
    bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A token of the local identity provider' }
  }
}

/** Parts of the components object of OpenAPI 3. */
export interface OpenapiComponents {
  /** Answers of the routes, in JSON Schema. */
  schemas: Readonly<Record<'AuthError' | 'Principal', ObjectSchema>>
  /** How a request says who sends it. */
  securitySchemes: {
    /** The cookie that a sign-in sets. */
    session: Readonly<Record<'type', 'apiKey'> & Record<'in' | 'name' | 'description', string>>
    /** The token that `requireBearer` asks for. */
    bearer: Readonly<Record<'type', 'http'> & Record<'scheme' | 'bearerFormat' | 'description', string>>
  }
}

type ObjectSchema = Readonly<Record<'type', 'object'> & Record<'title' | 'description', string> & Record<'required', string[]> & Record<'properties', Record<string, object>>>

/**
 * Has @fastify/swagger document the routes that are added to a scope from now on.
 *
 * Our schemas are JSON Schema, whatever those of the application are: its own `transform`, which may know Zod only, is not asked about them.
 */
export function documentRoutes (scope: FastifyInstance): void {
  scope.addHook('onRoute', route => { route.config = Object.assign({ swaggerTransform: documented }, route.config) })
}

/** A document as far as @fastify/swagger has it while it asks about routes; none for Swagger 2.0. */
interface OpenapiDocument {
  components?: { schemas?: Readonly<Record<string, object>>, securitySchemes?: Readonly<Record<string, unknown>> }
}

interface DocumentedSchema extends FastifySchema {
  security?: ReadonlyArray<Readonly<Record<string, readonly string[]>>>
}

interface NamedSchema {
  title?: string
  description?: string
  headers?: object
}

/** A schema as OpenAPI can have it. What the document does not declare cannot be referred to: @fastify/swagger throws at such a name. */
function documented ({ schema, url, openapiObject }: { schema: DocumentedSchema, url: string, openapiObject?: OpenapiDocument }): { schema: FastifySchema, url: string } {
  const { schemas = {}, securitySchemes = {} } = openapiObject?.components ?? {}
  const { security, body, response, ...rest } = schema
  const isDeclared = security?.every(requirement => Object.keys(requirement).every(name => Object.hasOwn(securitySchemes, name))) === true
  return {
    url,
    schema: {
      ...rest,
      ...(isDeclared && { security }),
      ...(body !== undefined && { body: withoutPropertyNames(body) }),
      response: Object.fromEntries(Object.entries(Object(response)).map(([status, answer]) => [status, referring(Object(answer), schemas)]))
    }
  }
}

/** OpenAPI 3.0 does not know the keyword. */
function withoutPropertyNames (body: unknown): unknown {
  const { propertyNames, ...known } = Object(body)
  return known
}

/** An answer by the name of its schema. */
function referring (answer: NamedSchema, schemas: Readonly<Record<string, NamedSchema>>): unknown {
  const { title, description, headers } = answer
  if (title === undefined || schemas[title]?.title !== title) return answer
  return { description, headers, content: { 'application/json': { schema: { $ref: `#/components/schemas/${title}` } } } }
}
