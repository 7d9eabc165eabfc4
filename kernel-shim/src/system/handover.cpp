#include "lrpc/detail/shim/system/handover.h"

namespace lrpc::shim {

std::array<char, 4096> handover_places{};

}  // namespace lrpc::shim

#ifndef LRPC_INSTRUMENTED_RUNTIME
// ThreadSanitizer's run-time library calls this when the program starts; a program may have its own. The linker takes
// some inline functions of shared pointers to the library's records from the program, compiled with ThreadSanitizer,
// and others from here, compiled without. So ThreadSanitizer sees references dropped, but not always the order that
// their count makes, and reports the destruction of the record as a race.
extern "C" [[gnu::weak, gnu::visibility("default")]] const char* __tsan_default_suppressions();  // NOLINT: not our name
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::_Sp_counted_ptr_inplace<lrpc::client::\n"
         "race:std::_Sp_counted_ptr_inplace<lrpc::server::\n"
         "race:std::_Sp_counted_ptr_inplace<lrpc::shim::\n";
}
#endif
