// libserver: export an interface and serve it. What generated server stubs include.
#pragma once

#if __cplusplus < 202002L
#error "lrpc needs C++20: compile with -std=c++20"
#endif

#include "lrpc/detail/server/call_context.h"
#include "lrpc/detail/server/callback_port.h"
#include "lrpc/detail/server/entry.h"
#include "lrpc/detail/server/run.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/call/variable.h"
#include "lrpc/detail/shim/result.h"
