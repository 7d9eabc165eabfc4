// libclient: import an interface and call it. Generated client stubs include this header.
#pragma once

#if __cplusplus < 202002L
#error "lrpc needs C++20: compile with -std=c++20"
#endif

#include "lrpc/detail/client/call/call.h"
#include "lrpc/detail/client/call/call_scope.h"
#include "lrpc/detail/client/call/completion_queue.h"
#include "lrpc/detail/client/call/pending.h"
#include "lrpc/detail/client/call/stub.h"
#include "lrpc/detail/client/import/binding.h"
#include "lrpc/detail/client/remote/group_call.h"
#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/call/variable.h"
#include "lrpc/detail/shim/result.h"
