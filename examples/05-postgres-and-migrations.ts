/**
 * Users in Postgres, beside a table of the application that refers to them. One set of migrations makes all tables.
 *
 *     npm install fastify fastify-svc-auth drizzle-orm postgres && npm install --save-dev drizzle-kit
 *     npx drizzle-kit generate --dialect postgresql --schema 05-postgres-and-migrations.ts --out migrations
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     DATABASE_URL=postgres://localhost/notes npx tsx 05-postgres-and-migrations.ts
 */
import { pgTable, text, uuid } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import Fastify, { type FastifyInstance } from 'fastify'
import authPlugin, { LocalIdentityProvider, SqlAuthStore } from 'fastify-svc-auth'
import { users } from 'fastify-svc-auth/schema/postgres'
import postgres from 'postgres'

export * from 'fastify-svc-auth/schema/postgres'
export const notes = pgTable('notes', {
  text: text('text').notNull(),
  authorId: uuid('author_id').notNull().references(() => users.userId, { onDelete: 'cascade' })
})

export async function buildApp (url = process.env.DATABASE_URL ?? ''): Promise<FastifyInstance> {
  const client = postgres(url)
  const db = drizzle({ client })
  await migrate(db, { migrationsFolder: 'migrations' })

  const app = Fastify({ logger: true })
  app.addHook('onClose', async () => client.end())
  const store = new SqlAuthStore(db, { createTables: false })
  await app.register(authPlugin, { baseUrl: 'http://localhost:3000', local: new LocalIdentityProvider(), store })
  app.post<{ Body: { text: string } }>('/notes', { preHandler: app.auth.requireUser }, async request => {
    return db.insert(notes).values({ text: request.body.text, authorId: app.auth.user(request).userId }).returning()
  })
  return app
}

// drizzle-kit loads this file for its tables, and starts no server.
if (process.argv[1] === import.meta.filename) {
  buildApp().then(app => app.listen({ port: Number(process.env.PORT ?? 3000) }), console.error)
}
