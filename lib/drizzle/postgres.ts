export * from './sql.js'
export * from '../schema/postgres.js'
export { alias } from 'drizzle-orm/pg-core'
export { drizzle } from 'drizzle-orm/pg-proxy'
