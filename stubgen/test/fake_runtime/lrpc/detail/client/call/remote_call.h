// All of the stand-in is in call.h.
#pragma once

#include "lrpc/detail/client/call/call.h"
