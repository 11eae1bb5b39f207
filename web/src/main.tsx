import { render } from "preact";
import { App } from "./app";
import { startKeys } from "./keys";
import { startLive } from "./live";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/table.css";
import "./theme";
import { followLinks } from "./url";

followLinks();
startKeys();
startLive();
const at = document.getElementById("app");
if (at) render(<App />, at);
