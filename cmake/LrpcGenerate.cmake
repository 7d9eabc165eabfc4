# lrpc_generate(target file.lrpc ...): the stub generator as a build step. Used by this build, and by programs that found
# the installed package; both have the generator as lrpc::lrpc-stubgen.
#
#   lrpc_generate(filesd files.lrpc)            # then: #include "files.server.h"
#
# For each file the headers <name>.types.h, <name>.client.h and <name>.server.h are made in the target's binary directory,
# under generated/<target>, whenever the file or the generator has changed. The target finds them by name, and so does
# who links to it: PUBLIC for a library, INTERFACE for an interface library, PRIVATE for a program. Relative paths are
# relative to the calling CMakeLists.txt.
function(lrpc_generate target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "lrpc_generate: there is no target '${target}'")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "lrpc_generate(${target}): name at least one .lrpc file")
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(binary_dir ${target} BINARY_DIR)
  set(out "${binary_dir}/generated/${target}")

  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(name "${path}" NAME)
    if(NOT name MATCHES "^[A-Za-z0-9._-]+\\.lrpc$")
      message(FATAL_ERROR "lrpc_generate(${target}): '${file}' is not a .lrpc file")
    endif()
    string(REGEX REPLACE "\\.lrpc$" "" stem "${name}")
    set(headers "${out}/${stem}.types.h" "${out}/${stem}.client.h" "${out}/${stem}.server.h")
    add_custom_command(
      OUTPUT ${headers}
      COMMAND $<TARGET_FILE:lrpc::lrpc-stubgen> "${path}" --out "${out}"
      DEPENDS "${path}" $<TARGET_FILE:lrpc::lrpc-stubgen>
      COMMENT "Generating stubs from ${name}"
      VERBATIM)
    # A target of its own, because headers of an interface library are nobody's sources.
    add_custom_target(${target}.${stem}.lrpc DEPENDS ${headers} SOURCES "${path}")
    if(TARGET lrpc-stubgen)
      add_dependencies(${target}.${stem}.lrpc lrpc-stubgen)
    endif()
    add_dependencies(${target} ${target}.${stem}.lrpc)
  endforeach()

  if(type STREQUAL "INTERFACE_LIBRARY")
    target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${out}>")
  elseif(type STREQUAL "EXECUTABLE")
    target_include_directories(${target} PRIVATE "${out}")
  else()
    target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${out}>")
  endif()
endfunction()
