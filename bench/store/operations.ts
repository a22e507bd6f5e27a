import { Accounts, type AuthStore } from '../../dist/index.js'
import { type AdmittedUser, authorizationClaims, identityClaims } from '../parts/people.js'

/** What is measured. What it resolves to holds the user's id or the name that was written, to show that it was done. */
export interface Operations {
  findByLink (person: AdmittedUser): unknown
  findByEmail (person: AdmittedUser): unknown
  findCredential (person: AdmittedUser): unknown
  /** Grants a claim. */
  grant (person: AdmittedUser): unknown
  /** Notes a sign-in: the upsert of somebody who is known. */
  refreshIdentity (person: AdmittedUser): unknown
  /** Makes a user with a link. */
  createUser (person: AdmittedUser): unknown
}

/** The operations as the library does them. */
export function storeOperations (store: AuthStore): Operations {
  return {
    findByLink: ({ subject }) => store.findUser({ provider: 'dev', subject }),
    findByEmail: ({ email }) => store.findUser({ email }),
    findCredential: ({ email }) => store.findCredential(email),
    grant: ({ userId, name: badge }) => new Accounts(store).grant(userId, { badge }),
    refreshIdentity: person => new Accounts(store).refreshIdentity({ provider: 'dev', subject: person.subject, claims: identityClaims(person), verifiedEmail: person.email }),
    createUser: person => new Accounts(store).createUser({
      userId: person.userId,
      email: person.email,
      emailVerified: true,
      name: person.name,
      claims: authorizationClaims(person),
      link: { provider: 'dev', subject: person.subject, claims: identityClaims(person) }
    })
  }
}
