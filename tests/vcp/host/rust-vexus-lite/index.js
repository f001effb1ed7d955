"use strict";
throw new Error("version `GLIBC_9.99' not found");
