import postgres, { type ParameterOrJSON, type Sql } from 'postgres'
import { SqlAuthStore } from '../../dist/engines/sql.js'
import { filledPostgres } from '../parts/databases.js'
import { authorizationClaims, identityClaims } from '../parts/people.js'
import type { PostgresServer } from '../parts/postgres-server.js'
import type { Contest } from './contest.js'
import { type Operations, storeOperations } from './operations.js'

/** A temporary Postgres database with so many users, behind a pool with the settings that the store gives to a URL. */
export async function postgresContest (server: PostgresServer, users: number): Promise<Contest> {
  const client = postgres(await filledPostgres(server, users), { max: 10, connection: { statement_timeout: 5000 } })
  return {
    users,
    store: storeOperations(new SqlAuthStore(client)),
    raw: rawOperations(client),
    remove: people => client`delete from svc_auth_users where user_id = any(${people.map(({ userId }) => userId)}::uuid[])`,
    close: () => client.end()
  }
}

/** The least that does the same: one prepared statement each, with the locks that the store takes. */
function rawOperations (client: Sql): Operations {
  const run = (statement: string, ...params: Array<ParameterOrJSON<never>>) => client.unsafe(statement, params, { prepare: true })
  return {
    findByLink: ({ subject }) => run(`select users.* from svc_auth_provider_links links join svc_auth_users users on users.user_id = links.user_id
      where links.provider = 'dev' and links.subject = $1`, subject),
    findByEmail: ({ email }) => run('select * from svc_auth_users where email = $1', email),
    findCredential: ({ email }) => run(`select users.*, links.claims as link_claims, credentials.pw_hash from svc_auth_provider_links links
      join svc_auth_users users on users.user_id = links.user_id join svc_auth_credentials credentials on credentials.user_id = links.user_id
      where links.provider = 'local' and links.subject = $1`, email),
    grant: ({ userId, name: badge }) => run('update svc_auth_users set claims = claims || $1::text::jsonb where user_id = $2 returning claims', JSON.stringify({ badge }), userId),
    refreshIdentity: person => run(`
      with owner as (
        select users.user_id from svc_auth_users users join svc_auth_provider_links links on links.user_id = users.user_id
        where links.provider = 'dev' and links.subject = $1 for no key update of users
      ), link as (
        update svc_auth_provider_links links set claims = $2::text::jsonb from owner
        where links.provider = 'dev' and links.subject = $1 and links.user_id = owner.user_id returning links.user_id
      ), free as (
        select link.user_id, not exists (select from svc_auth_users other where other.email = $4 and other.user_id <> link.user_id) as is_free from link
      )
      update svc_auth_users users set
        name = $3,
        email = case when free.is_free then $4 else users.email end,
        extras = case when free.is_free then users.extras || '{"email_verified":true}' else users.extras end
      from free where users.user_id = free.user_id returning users.*`, person.subject, JSON.stringify(identityClaims(person)), person.name, person.email),
    createUser: person => run(`
      with new_user as (
        insert into svc_auth_users (user_id, email, name, claims, extras) values ($1, $2, $3, $6::text::jsonb, '{"email_verified":true}') returning *
      ), new_link as (
        insert into svc_auth_provider_links (provider, subject, user_id, claims) values ('dev', $4, $1, $5::text::jsonb)
      )
      select * from new_user`, person.userId, person.email, person.name, person.subject, JSON.stringify(identityClaims(person)), JSON.stringify(authorizationClaims(person)))
  }
}
