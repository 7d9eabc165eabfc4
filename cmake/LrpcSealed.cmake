# lrpc_sealed_program(target): links the program so that it can run in a sealed domain (`lrpc run --sealed`):
# statically, because a sealed program cannot open its libraries, and position-independent all the same.
function(lrpc_sealed_program target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "lrpc_sealed_program: there is no target '${target}'")
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_options(${target} PRIVATE -static-pie)
endfunction()
