import SqliteDatabase, { type Database } from 'better-sqlite3'
import { SqlAuthStore } from '../../dist/engines/sql.js'
import { filledSqlite } from '../parts/databases.js'
import { type AdmittedUser, authorizationClaims, identityClaims } from '../parts/people.js'
import type { Contest } from './contest.js'
import { type Operations, storeOperations } from './operations.js'

/** A temporary SQLite file with so many users, with the settings that the store gives to a file. */
export async function sqliteContest (users: number): Promise<Contest> {
  // One connection for both: each write on another one would make SQLite forget its cache.
  const connection = new SqliteDatabase(await filledSqlite(users))
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = FULL')
  connection.pragma('foreign_keys = ON')
  const deleteUser = connection.prepare('delete from svc_auth_users where user_id = ?')
  return {
    users,
    store: storeOperations(new SqlAuthStore(connection)),
    raw: rawOperations(connection),
    remove: connection.transaction((people: AdmittedUser[]) => { for (const { userId } of people) deleteUser.run(userId) }),
    close: () => { connection.close() }
  }
}

/** The least that does the same: statements prepared once, each a line of SQL; writes in an immediate transaction. */
function rawOperations (connection: Database): Operations {
  const userByLink = connection.prepare(`select users.* from svc_auth_provider_links links join svc_auth_users users on users.user_id = links.user_id
    where links.provider = ? and links.subject = ?`)
  const userByEmail = connection.prepare('select * from svc_auth_users where email = ?')
  const credential = connection.prepare(`select users.*, links.claims as link_claims, credentials.pw_hash from svc_auth_provider_links links
    join svc_auth_users users on users.user_id = links.user_id join svc_auth_credentials credentials on credentials.user_id = links.user_id
    where links.provider = 'local' and links.subject = ?`)
  const claimsOf = connection.prepare<[string], string>('select claims from svc_auth_users where user_id = ?').pluck()
  const setClaims = connection.prepare('update svc_auth_users set claims = ? where user_id = ?')
  const setLinkClaims = connection.prepare<[string, string, string], string>('update svc_auth_provider_links set claims = ? where provider = ? and subject = ? returning user_id').pluck()
  const ownerOfEmail = connection.prepare<[string], string>('select user_id from svc_auth_users where email = ?').pluck()
  const setUser = connection.prepare("update svc_auth_users set name = ?, email = ?, extras = json_set(extras, '$.email_verified', json('true')) where user_id = ? returning *")
  const insertUser = connection.prepare('insert into svc_auth_users (user_id, email, name, claims, extras) values (?, ?, ?, ?, ?) returning *')
  const insertLink = connection.prepare('insert into svc_auth_provider_links (provider, subject, user_id, claims) values (?, ?, ?, ?)')

  const grant = connection.transaction((userId: string, granted: object) => {
    const claims = JSON.stringify({ ...JSON.parse(claimsOf.get(userId) ?? ''), ...granted })
    setClaims.run(claims, userId)
    return claims
  })
  const refreshIdentity = connection.transaction((person: AdmittedUser) => {
    const { subject, name, email } = person
    const userId = setLinkClaims.get(JSON.stringify(identityClaims(person)), 'dev', subject)
    if (userId === undefined || (ownerOfEmail.get(email) ?? userId) !== userId) throw new Error('nobody loses his e-mail in this bench')
    return setUser.get(name, email, userId)
  })
  const createUser = connection.transaction((person: AdmittedUser) => {
    const { userId, email, name, subject } = person
    const user = insertUser.get(userId, email, name, JSON.stringify(authorizationClaims(person)), '{"email_verified":true}')
    insertLink.run('dev', subject, userId, JSON.stringify(identityClaims(person)))
    return user
  })
  return {
    findByLink: ({ subject }) => userByLink.get('dev', subject),
    findByEmail: ({ email }) => userByEmail.get(email),
    findCredential: ({ email }) => credential.get(email),
    grant: ({ userId, name: badge }) => grant.immediate(userId, { badge }),
    refreshIdentity: person => refreshIdentity.immediate(person),
    createUser: person => createUser.immediate(person)
  }
}
