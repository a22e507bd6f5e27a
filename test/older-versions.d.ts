/** Older versions, which are installed under other names beside the current ones. */
declare module 'better-sqlite3-12' {
  export { default } from 'better-sqlite3'
}

declare module 'fastify-session-11.1.2' {
  export { default } from '@fastify/session'
}
