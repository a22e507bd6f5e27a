import fastifySwagger from '@fastify/swagger'
import Fastify from 'fastify'
import { openapiComponents } from 'fastify-svc-auth'
import { expect, test } from 'tstyche'

const app = Fastify()

test('@fastify/swagger takes the components, as they are and among others', () => {
  const { session, bearer } = openapiComponents.securitySchemes
  expect(app.register).type.toBeCallableWith(fastifySwagger, { openapi: { components: openapiComponents } })
  expect(app.register).type.toBeCallableWith(fastifySwagger, { openapi: { openapi: '3.1.0', components: openapiComponents } })
  expect(app.register).type.toBeCallableWith(fastifySwagger, {
    openapi: {
      components: {
        schemas: { ...openapiComponents.schemas, Report: { type: 'object' } },
        securitySchemes: { bearer, session: { ...session, name: '__Host-id' } }
      }
    }
  })
  expect(openapiComponents).type.toHaveProperty('schemas')
  expect(openapiComponents.schemas).type.toHaveProperty('AuthError')
  expect(openapiComponents.schemas).type.toHaveProperty('Principal')
})
