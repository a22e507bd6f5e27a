/** Version 12, which is installed under another name beside the current one. */
declare module 'better-sqlite3-12' {
  export { default } from 'better-sqlite3'
}
