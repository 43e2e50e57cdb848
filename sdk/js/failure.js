// A failure that the user sees, with the code that plans and other programs go by.

export class Failure extends Error {
  constructor(code, message, { retryable = false, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Failure";
    this.payload = { code, message, retryable };
  }
}
