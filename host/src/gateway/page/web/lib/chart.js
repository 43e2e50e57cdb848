export function place() { throw Object.assign(new Error('Soon.'), { reader: true }); }
