/**
 * Each new user founds an organization and has a profile in it. The hook onCreateUser writes these
 * rows in the transaction that creates the user: all of them are there, or none and no user.
 *
 *     npm install fastify fastify-svc-auth better-sqlite3 drizzle-orm
 *     export SVC_SESSION_SECRET=$(openssl rand -hex 32) LOCAL_IDP_SECRET=$(openssl rand -hex 32)
 *     npx tsx 11-organizations.ts
 *
 *     curl --cookie-jar cookies http://localhost:3000/auth/local/register --json \
 *       '{ "email": "ada@example.com", "password": "a correct horse", "name": "Ada", "organization": "Analysts" }'
 *     curl --cookie cookies http://localhost:3000/members
 */
import { randomUUID } from 'node:crypto'
import Database from 'better-sqlite3'
import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import Fastify from 'fastify'
import authPlugin, { LocalIdentityProvider, SignInRefused, SqlAuthStore } from 'fastify-svc-auth'
import { users } from 'fastify-svc-auth/schema/sqlite'

export const organizations = sqliteTable('organizations', {
  id: text('id').primaryKey(),
  name: text('name').notNull().unique()
})
export const profiles = sqliteTable('profiles', {
  userId: text('user_id').primaryKey().references(() => users.userId, { onDelete: 'cascade' }),
  organizationId: text('organization_id').notNull().references(() => organizations.id),
  role: text('role').notNull()
})

const connection = new Database(process.env.LOCAL_AUTH_DB ?? 'organizations.db')
connection.pragma('foreign_keys = on')
// In place of migrations. The trigger deletes an organization with its last member: its name is free
// again, also where a sign-up fails after the hook.
connection.exec(`
  create table if not exists organizations (id text primary key, name text not null unique);
  create table if not exists profiles (
    user_id text primary key references svc_auth_users (user_id) on delete cascade,
    organization_id text not null references organizations (id),
    role text not null
  );
  create trigger if not exists last_member after delete on profiles
    when not exists (select 1 from profiles where organization_id = old.organization_id)
    begin delete from organizations where id = old.organization_id; end;
`)
const db = drizzle({ client: connection })

export const app = Fastify({ logger: true })
app.addHook('onClose', async () => { connection.close() })
await app.register(authPlugin, {
  baseUrl: 'http://localhost:3000',
  local: new LocalIdentityProvider(),
  store: new SqlAuthStore(db),
  onCreateUser ({ tx, user, request }) {
    const name = organizationIn(request?.body)
    if (name === '') throw new SignInRefused('no_organization', 'Enter the name of your organization.')

    const id = randomUUID()
    // A violation of the unique key would be answered as internal_error.
    const { changes } = tx.insert(organizations).values({ id, name }).onConflictDoNothing().run()
    if (changes === 0) throw new SignInRefused('organization_exists', 'This name is taken. Choose another name.')
    tx.insert(profiles).values({ userId: user.userId, organizationId: id, role: 'owner' }).run()
    return { claims: { org: id } }
  }
})

/** The application's own field of the form; empty for users who come without the form. */
function organizationIn (body: unknown): string {
  if (typeof body !== 'object' || body === null || !('organization' in body)) return ''
  return typeof body.organization === 'string' ? body.organization.trim() : ''
}

// The claim is in the session: no query asks which organization the user belongs to.
app.get('/members', { preHandler: app.auth.requireUser }, async request => {
  const { org } = app.auth.user(request).claims
  return db.select({ name: users.name, role: profiles.role }).from(profiles)
    .innerJoin(users, eq(users.userId, profiles.userId)).where(eq(profiles.organizationId, String(org)))
})

await app.listen({ port: Number(process.env.PORT ?? 3000) })
