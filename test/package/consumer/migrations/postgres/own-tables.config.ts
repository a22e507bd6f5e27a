import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'postgresql',
  schema: './own-tables.ts',
  out: './own-migrations',
  // drizzle-kit push drops what it does not find in the schema: the store's tables are not its business.
  tablesFilter: ['!svc_auth_*'],
  dbCredentials: { url: process.env.DATABASE_URL ?? '' }
})
