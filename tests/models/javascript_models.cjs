/**
 * An application of the JavaScript library @pocketgems/dynamodb, at the other end of a pipe.
 *
 * Each line of standard input is a command, {"do": name, ...}; each line of standard output is its answer, {"ok": value}
 * or {"error": {"name", "message"}}. A null among an item's values stands for undefined, which JSON lacks. The models are
 * the counterparts of those in interop_models.py.
 *
 * Run with NODE_PATH naming the installed packages, DYNAMO_ENDPT the server and SERVICE the prefix of the tables' names.
 */

console.log = console.error // the library reports contention with it, and standard output is ours

const readline = require('readline')

const db = require('@pocketgems/dynamodb')
const S = require('@pocketgems/schema')

// --- one model for each shape of key ---

class Guest extends db.Model {
  static KEY = { email: S.str }
  static FIELDS = { visits: S.int.min(0).default(0), note: S.str.optional() }
}

class RaceResult extends db.Model {
  static KEY = { raceID: S.int, runnerName: S.str }
  static FIELDS = { seconds: S.double, place: S.int.optional() }
}

class Ticket extends db.Model {
  static KEY = { number: S.int }
  static FIELDS = { holder: S.str }
}

class Mark extends db.Model {
  static KEY = { at: S.double }
  static FIELDS = { label: S.str }
}

class Reading extends db.Model {
  static KEY = { sensor: S.str }
  static SORT_KEY = { epoch: S.int }
  static FIELDS = { celsius: S.double }
}

class Message extends db.Model {
  static KEY = { room: S.str }
  static SORT_KEY = { sender: S.str, at: S.int }
  static FIELDS = { text: S.str }
}

class Toggle extends db.Model {
  static KEY = { on: S.bool }
  static FIELDS = { since: S.int }
}

class Place extends db.Model {
  static KEY = { where: S.obj() }
  static FIELDS = { label: S.str }
}

class Route extends db.Model {
  static KEY = { stops: S.arr() }
  static FIELDS = { label: S.str }
}

class Mixture extends db.Model {
  static KEY = { Z: S.bool, a: S.str, a2: S.arr(), b: S.double, é: S.str }
  static SORT_KEY = { extra: S.obj(), step: S.int }
}

// For this one name, the library keeps its earlier rule: a number in a key is text, even if the key is only that number.
class ActionHistory extends db.Model {
  static KEY = { account: S.int }
  static SORT_KEY = { epoch: S.int }
  static FIELDS = { action: S.str }
}

// --- every type of field, and the key of models that declare none ---

class Everything extends db.Model {
  static FIELDS = {
    text: S.str,
    whole: S.int,
    real: S.double,
    flag: S.bool,
    names: S.arr(S.str),
    free: S.arr(),
    shape: S.obj({ arr: S.arr(S.str), depth: S.int.optional() }),
    loose: S.obj(),
    scores: S.map.value(S.int),
    maybeText: S.str.optional(),
    maybeWhole: S.int.optional(),
    maybeNames: S.arr(S.str).optional(),
    level: S.int.default(5),
    tags: S.arr(S.str).default([]),
    fixed: S.int.readOnly().default(7)
  }
}

// --- several models in one table ---

class Inventory extends db.Model {
  static tableName = 'Inventory'
  static INVENTORY_ITEM_TYPE = 'none'
  static KEY = { userID: S.str }
  static get SORT_KEY () {
    return { typeKey: S.str.default(this.INVENTORY_ITEM_TYPE) }
  }

  static get FIELDS () {
    return { items: S.obj().default({}) }
  }
}

class Currency extends Inventory {
  static INVENTORY_ITEM_TYPE = 'money'
}

class Weapon extends Inventory {
  static INVENTORY_ITEM_TYPE = 'weapon'
  static get FIELDS () {
    return { ...super.FIELDS, weaponSkillLevel: S.obj() }
  }
}

// --- indexes ---

class Payment extends db.Model {
  static KEY = { player: S.str, admin: S.str }
  static FIELDS = { payout: S.int, status: S.bool, method: S.str, tags: S.arr().optional() }
  static INDEXES = {
    byPlayer: { KEY: ['player'], SORT_KEY: ['payout', 'admin'] },
    byAdmin: { KEY: ['admin'], SORT_KEY: ['payout'] },
    byMethod: { KEY: ['method'] },
    byStatus: { KEY: ['status'] },
    byTags: { KEY: ['tags'], SPARSE: true }
  }
}

// --- expiry ---

class Session extends db.Model {
  static KEY = { token: S.str }
  static FIELDS = { user: S.str, expires: S.int.optional() }
  static EXPIRE_EPOCH_FIELD = 'expires'
}

const MODELS = Object.fromEntries([
  Guest, RaceResult, Ticket, Mark, Reading, Message, Toggle, Place, Route, Mixture, ActionHistory, Everything,
  Inventory, Currency, Weapon, Payment, Session
].map(Model => [Model.name, Model]))

// --- values ---

function given (values) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value === null ? undefined : value]))
}

/** The key. A single false, zero or empty component is passed without its name, or the library takes it for missing. */
function keyOf (Model, components) {
  const values = Object.values(components)
  return Model.key(values.length === 1 && !values[0] ? values[0] : components)
}

// --- commands ---

function inTransaction (body) {
  return db.Transaction.run({ retries: 0 }, body)
}

/** Transactions that have read their items and wait for `commit`. */
const waiting = new Map()

function apply (tx, item, { read = [], set = {}, increment = {}, remove = false }) {
  for (const name of read) item[name] // eslint-disable-line no-unused-expressions
  for (const [name, value] of Object.entries(given(set))) item[name] = value
  for (const [name, by] of Object.entries(increment)) item.getField(name).incrementBy(by)
  if (remove) tx.delete(item)
}

const COMMANDS = {
  async setup () {
    for (const Model of Object.values(MODELS)) await Model.createResources()
    return require('@pocketgems/dynamodb/package.json').version
  },

  async encode ({ model, key }) {
    return keyOf(MODELS[model], key).encodedKeys
  },

  async create ({ model, values }) {
    await inTransaction(tx => { tx.create(MODELS[model], given(values)) })
  },

  async createAll ({ items }) {
    await inTransaction(tx => { for (const { model, values } of items) tx.create(MODELS[model], given(values)) })
  },

  async get ({ model, key }) {
    const Model = MODELS[model]
    return db.Transaction.run({ retries: 0, readOnly: true }, async tx => (await tx.get(keyOf(Model, key))) ?? null)
  },

  async getAll ({ items }) {
    const keys = items.map(({ model, key }) => keyOf(MODELS[model], key))
    return db.Transaction.run({ retries: 0, readOnly: true }, async tx =>
      (await tx.get(keys)).map(item => item ?? null))
  },

  async change ({ model, key, ...changes }) {
    await inTransaction(async tx => apply(tx, await tx.get(keyOf(MODELS[model], key)), changes))
  },

  async update ({ model, expected, changes }) {
    await inTransaction(tx => { tx.update(MODELS[model], expected, given(changes)) })
  },

  async createOrPut ({ model, expected, values }) {
    await inTransaction(tx => { tx.createOrPut(MODELS[model], given(values), expected) })
  },

  async delete ({ model, key }) {
    await inTransaction(tx => { tx.delete(keyOf(MODELS[model], key)) })
  },

  async query ({ model, options = {}, where, limit = 100 }) {
    return db.Transaction.run({ retries: 0, readOnly: true }, async tx => {
      const query = tx.query(MODELS[model], options)
      for (const [name, operation] of Object.entries(where)) query[name](...operation)
      return (await query.fetch(limit))[0]
    })
  },

  /** Read items in a transaction that stays open until `commit` sends the changes; return which of the items exist. */
  async open ({ transaction, items }) {
    return new Promise((resolve, reject) => {
      const done = inTransaction(async tx => {
        const found = []
        for (const { model, key } of items) found.push(await tx.get(keyOf(MODELS[model], key)))
        const committing = new Promise(send => waiting.set(transaction, { send, done: () => done }))
        resolve(found.map(item => item !== undefined))
        const { changes, create } = await committing
        changes.forEach((change, at) => apply(tx, found[at], change))
        for (const { model, values } of create) tx.create(MODELS[model], given(values))
      })
      done.catch(reject)
    })
  },

  async commit ({ transaction, changes = [], create = [] }) {
    const { send, done } = waiting.get(transaction)
    waiting.delete(transaction)
    send({ changes, create })
    await done()
  }
}

async function answer (line) {
  try {
    const { do: name, ...args } = JSON.parse(line)
    return JSON.stringify({ ok: (await COMMANDS[name](args)) ?? null }) // serializing reads items, and may fail
  } catch (error) {
    return JSON.stringify({ error: { name: error.name, message: error.message } })
  }
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(await answer(line) + '\n')
  }
}

main()
