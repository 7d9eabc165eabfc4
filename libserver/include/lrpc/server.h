// libserver: export an interface and serve it. What generated server stubs include.
#pragma once

#include "lrpc/server/call_context.h"
#include "lrpc/server/callback_port.h"
#include "lrpc/server/entry.h"
#include "lrpc/server/run.h"
#include "lrpc/server/server.h"
#include "lrpc/shim/call/pdl.h"
#include "lrpc/shim/call/value.h"
#include "lrpc/shim/call/variable.h"
#include "lrpc/shim/result.h"
