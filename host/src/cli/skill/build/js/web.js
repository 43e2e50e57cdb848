// Larger web interfaces. Only those that the project uses become part of its component.

import URL from "core-js-pure/actual/url/index.js";
import URLSearchParams from "core-js-pure/actual/url-search-params/index.js";
import structuredClone from "core-js-pure/actual/structured-clone.js";

export { URL, URLSearchParams, structuredClone };
