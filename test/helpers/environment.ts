import type { Test } from 'tap'

/** Sets variables of the environment until the end of the test; one that is undefined is removed. */
export function setEnv (t: Test, values: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name]
    t.teardown(() => { assign(name, before) })
    assign(name, value)
  }
}

function assign (name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}
